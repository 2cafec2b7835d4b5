#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "driver/rpc/server.h"
#include "proto/rpc/channel.h"

namespace troupe::driver {
namespace {

namespace fs = std::filesystem;
constexpr long kLifetimeSeconds = 10L * 365 * 24 * 3600;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* pointer) const { Free(pointer); }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509, X509_free>>;

Error failure(const std::string& what) { return internal_error("making the cluster's certificate: " + what); }

/// Written with mode 0600 from its first byte, under a temporary name.
Status write_private(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return make_error(ErrorCode::kFailedPrecondition, "cannot write " + path + ": " + std::strerror(errno));
  const ssize_t written = ::write(fd, text.data(), text.size());
  ::close(fd);
  if (written != static_cast<ssize_t>(text.size()) || ::rename(temporary.c_str(), path.c_str()) != 0)
    return make_error(ErrorCode::kFailedPrecondition, "cannot write " + path + ": " + std::strerror(errno));
  return {};
}

template <typename Write>
Result<std::string> to_pem(Write write) {
  std::unique_ptr<BIO, Deleter<BIO, BIO_free_all>> memory(BIO_new(BIO_s_mem()));
  if (!memory || !write(memory.get())) return failure("PEM");
  char* data = nullptr;
  const long length = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(length));
}

bool add_extension(X509* certificate, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION, X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, value));
  return extension && X509_add_ext(certificate, extension.get(), -1);
}

Result<Certificate> self_signed(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  X509* x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial >> 1);
  // An hour's head start: clocks of a cluster differ.
  X509_gmtime_adj(X509_getm_notBefore(x), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x), kLifetimeSeconds);
  X509_set_pubkey(x, key);
  X509_NAME* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(kDriverName), -1, -1, 0);
  X509_set_issuer_name(x, name);
  const std::string alternative = std::string("DNS:") + kDriverName;
  if (!add_extension(x, NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(x, NID_subject_alt_name, alternative.c_str()))
    return failure("extensions");
  if (!X509_sign(x, key, EVP_sha256())) return failure("signature");
  return certificate;
}

Status make_certificate(const Secrets& secrets) {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return failure("key");
  TROUPE_ASSIGN(Certificate certificate, self_signed(key.get()));
  TROUPE_ASSIGN(std::string key_text, to_pem([&](BIO* out) {
                  return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
                }));
  TROUPE_ASSIGN(std::string certificate_text,
                to_pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); }));
  TROUPE_RETURN_IF_ERROR(write_private(secrets.key_file, key_text));
  return write_private(secrets.certificate_file, certificate_text);
}

}  // namespace

Status make_secrets(const std::string& folder) {
  std::error_code error;
  const bool existed = fs::exists(folder, error);
  fs::create_directories(folder, error);
  if (error) return make_error(ErrorCode::kFailedPrecondition, "cannot create " + folder + ": " + error.message());
  if (!existed) ::chmod(folder.c_str(), 0700);
  const Secrets secrets = secrets_in(folder);
  for (const std::string& file : {secrets.key_file, secrets.token_file}) {
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
      return make_error(ErrorCode::kFailedPrecondition, file + " can be read by others; expected mode 0600");
  }
  if (!fs::exists(secrets.certificate_file) || !fs::exists(secrets.key_file))
    TROUPE_RETURN_IF_ERROR(make_certificate(secrets));
  if (!fs::exists(secrets.token_file)) {
    unsigned char bytes[32];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1) return failure("random bytes");
    std::string text;
    for (unsigned char byte : bytes) {
      char hex[3];
      std::snprintf(hex, sizeof(hex), "%02x", byte);
      text += hex;
    }
    TROUPE_RETURN_IF_ERROR(write_private(secrets.token_file, text + "\n"));
  }
  return {};
}

}  // namespace troupe::driver
