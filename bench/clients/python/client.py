"""A lock client of redis-py: client.py LIBRARY ADDRESS cycle KEY
                            client.py LIBRARY ADDRESS contend KEY FILE SECONDS

See the package comment of ../main.go.
"""

import asyncio
import json
import os
import random
import sys
import time

import redis
import redis.asyncio
from redis.exceptions import LockNotOwnedError, RedisError

library, address, mode, key = sys.argv[1:5]
host, port = address.split(":")


def cycle():
    a, b = redis.Redis(host, int(port)), redis.Redis(host, int(port))
    first = a.lock(key, timeout=3, blocking=False)
    assert first.acquire(), "acquire"
    assert not b.lock(key, timeout=3, blocking=False).acquire(), "a taken lock was granted"
    assert first.owned() and first.locked()
    first.extend(4, replace_ttl=True)
    first.extend(1)  # adds to what is left
    assert 4500 < a.pttl(key) <= 5000, a.pttl(key)
    first.reacquire()
    first.release()
    second = b.lock(key, timeout=0.4, blocking=False)
    assert second.acquire(), "acquire after release"
    last = a.lock(key, timeout=3)
    assert not last.acquire(blocking=False), "a taken lock was granted again"
    assert last.acquire(blocking=True, blocking_timeout=5), "it does not expire"
    try:
        second.release()
        raise AssertionError("a lock that has expired was released")
    except LockNotOwnedError:
        pass
    last.release()
    with a.lock(key, timeout=3):
        pass


async def cycle_async():
    a = redis.asyncio.Redis(host=host, port=int(port))
    first = a.lock(key, timeout=3)
    assert await first.acquire(blocking=False), "acquire"
    assert not await a.lock(key, timeout=3).acquire(blocking=False), "a taken lock was granted"
    await first.extend(4, replace_ttl=True)
    await first.reacquire()
    await first.release()
    assert await a.lock(key, timeout=0.4).acquire(blocking=False), "acquire after release"
    last = a.lock(key, timeout=3)
    assert await last.acquire(blocking=True, blocking_timeout=5), "it does not expire"
    await last.release()
    await a.close()


def contend(file, seconds):
    client = redis.Redis(host, int(port), socket_timeout=3)
    count = {"grants": 0, "overlaps": 0, "errors": 0}
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        time.sleep(random.uniform(0.002, 0.01))
        try:
            lock = client.lock(key, timeout=2, blocking=False)
            began = time.monotonic()
            if not lock.acquire():
                continue
            if time.monotonic() - began < 1:
                count["grants"] += 1
                try:
                    os.close(os.open(file, os.O_CREAT | os.O_EXCL))
                    time.sleep(0.002)
                    os.unlink(file)
                except OSError:
                    count["overlaps"] += 1
            lock.release()
        except RedisError:
            count["errors"] += 1
    print(json.dumps(count))


if mode == "cycle":
    asyncio.run(cycle_async()) if library == "redis-py-asyncio" else cycle()
    print("ok")
else:
    contend(*sys.argv[5:7])
