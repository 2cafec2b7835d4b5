"""Direct calls beside Ray's actor calls and plain gRPC, in one run on one machine.

Usage: PYTHON ray_dispatch.py --troupe BUILD/bin/troupe [--calls 4000]
PYTHON has Ray (`deploy/bootstrap.sh --benches`: .deps/benches/bin/python). Prints a table and a line of JSON. Exit code 1 when a bar is
missed: execute and execute_all at most 1.3x a round trip (or four at once) of plain gRPC, and 1/5 of Ray; 15,000 calls a second in flight.
A message on a stream that one polling thread serves, the quickest that gRPC has, is printed beside it.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HOSTS = 4


def percentiles(times):
    times = sorted(times)
    return {"p50_us": round(times[len(times) // 2] * 1e6, 1), "p99_us": round(times[int(len(times) * 0.99)] * 1e6, 1)}


def timed(count, call):
    for _ in range(count // 10):
        call()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return percentiles(times)


def measure_ray(calls):
    import ray
    folder = tempfile.mkdtemp(prefix="ray-")
    try:
        ray.init(num_cpus=HOSTS, include_dashboard=False, configure_logging=False, log_to_driver=False, _temp_dir=folder)
        @ray.remote
        class Echo:
            def echo(self, payload):
                return payload

        actors = [Echo.remote() for _ in range(HOSTS)]
        ray.get([actor.echo.remote(b"") for actor in actors])
        one = timed(calls, lambda: ray.get(actors[0].echo.remote(b"")))
        four = timed(calls // 2, lambda: ray.get([actor.echo.remote(b"") for actor in actors]))
        begin = time.perf_counter()
        ray.get([actors[0].echo.remote(b"") for _ in range(calls)])
        rate = round(calls / (time.perf_counter() - begin))
        return {"version": ray.__version__, "execute": one, "execute_all": four, "in_flight_calls_per_s": rate}
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def measure_troupe(troupe, calls):
    done = subprocess.run([troupe, "bench", "calls", "--calls", str(calls), "--json"], stdout=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"troupe bench calls: exit code {done.returncode}: {done.stdout}")
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--calls", type=int, default=4000)
    a = p.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ours = measure_troupe(a.troupe, a.calls)
    rays = measure_ray(a.calls)
    print(f"{'us':24s}" + "".join(f" {name + ' p50':>12s} {'p99':>8s}" for name in ("troupe", "unary", "stream", "Ray")))
    bars = {}
    for kind, name in (("execute", "execute"), ("execute_all", f"execute_all, {HOSTS} hosts")):
        columns = [ours[kind]["troupe"], ours[kind]["raw_unary"], ours[kind]["raw_stream"], rays[kind]]
        print(f"{name:24s}" + "".join(f" {c['p50_us']:12.1f} {c['p99_us']:8.1f}" for c in columns))
        bars[f"{kind}_beside_grpc"] = (ours[kind]["of_unary"], 1.3)
        bars[f"{kind}_beside_ray"] = (round(columns[0]["p50_us"] / columns[3]["p50_us"], 3), 0.2)
    rate = ours["in_flight_calls_per_s"]
    print(f"calls a second in flight: troupe {rate:.0f} (4 hosts {ours['in_flight_calls_per_s_4_hosts']:.0f}), Ray {rays['in_flight_calls_per_s']}")
    missed = [name for name, (ratio, most) in bars.items() if ratio > most] + (["in_flight"] if rate < 15000 else [])
    print(json.dumps({"ratios": {name: ratio for name, (ratio, _) in bars.items()}, "in_flight_calls_per_s": rate,
                      "ray": rays["version"], "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
