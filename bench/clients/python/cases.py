"""What redis-py promises of its locks, case by case: cases.py ADDRESS prints the cases that fail, and the
counts. Each runs on the client of threads and on that of asyncio."""

import asyncio
import inspect
import sys
import time

import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError

host, port = sys.argv[1].split(":")


async def do(result):
    return await result if inspect.isawaitable(result) else result


async def fails(error, result):
    try:
        await do(result() if callable(result) else result)
    except error as e:
        return e
    raise AssertionError(f"no {error.__name__}")


async def within(lock, body=None):
    """with lock: body"""
    if hasattr(lock, "__aenter__"):
        async with lock:
            return body and await body()
    with lock:
        return body and await body()


def between(low, value, high):
    assert low < value <= high, value


async def grants_and_releases(r):
    lock = r.lock("foo")
    assert await do(lock.acquire(blocking=False))
    assert await do(r.get("foo")) == lock.local.token
    assert await do(r.ttl("foo")) == -1
    await do(lock.release())
    assert await do(r.get("foo")) is None


async def takes_a_token(r):
    for token in "test", b"bytes":
        lock = r.lock("foo")
        assert await do(lock.acquire(blocking=False, token=token))
        want = token if isinstance(token, bytes) else token.encode()
        assert await do(r.get("foo")) == want and lock.local.token == want
        assert await do(r.ttl("foo")) == -1
        await do(lock.release())


async def shows_that_it_is_locked(r):
    lock = r.lock("foo")
    assert await do(lock.locked()) is False
    await do(lock.acquire(blocking=False))
    assert await do(lock.locked()) is True
    await do(lock.release())
    assert await do(lock.locked()) is False


async def shows_who_owns_it(r):
    lock, other = r.lock("foo"), r.lock("foo")
    assert await do(lock.owned()) is False
    await do(lock.acquire(blocking=False))
    assert await do(lock.owned()) is True and await do(other.owned()) is False
    await do(lock.release())
    assert await do(lock.owned()) is False


async def excludes(r):
    one, two = r.lock("foo"), r.lock("foo")
    assert await do(one.acquire(blocking=False))
    assert not await do(two.acquire(blocking=False))
    await do(one.release())
    assert await do(two.acquire(blocking=False))
    assert not await do(one.acquire(blocking=False))
    await do(two.release())


async def has_a_timeout(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    between(8, await do(r.ttl("foo")), 10)
    await do(lock.release())


async def has_a_timeout_in_fractions(r):
    lock = r.lock("foo", timeout=9.5)
    assert await do(lock.acquire(blocking=False))
    between(8000, await do(r.pttl("foo")), 9500)
    await do(lock.release())


async def blocks_unless_told(r):
    assert r.lock("foo").blocking
    if "blocking" in inspect.signature(r.lock).parameters:
        assert not r.lock("foo", blocking=False).blocking


async def gives_up_after_a_while(r):
    one = r.lock("foo")
    assert await do(one.acquire(blocking=False))
    two, began = r.lock("foo", blocking_timeout=0.2, sleep=0.05), time.monotonic()
    assert not await do(two.acquire())
    between(0.1, time.monotonic() - began, 0.4)
    await do(one.release())


async def gives_up_before_it_sleeps(r):
    one = r.lock("foo")
    assert await do(one.acquire(blocking=False))
    two, began = r.lock("foo", blocking_timeout=0.2, sleep=60), time.monotonic()
    assert not await do(two.acquire())
    assert time.monotonic() - began < 1
    await do(one.release())


async def is_a_context(r):
    async def held():
        assert await do(r.get("foo")) is not None

    await within(r.lock("foo"), held)
    assert await do(r.get("foo")) is None


async def is_a_context_with_patience(r):
    await within(r.lock("foo", blocking_timeout=0.2))
    assert await do(r.get("foo")) is None


async def is_no_context_where_taken(r):
    await do(r.lock("foo", timeout=2).acquire(blocking=False))
    await fails(LockError, lambda: within(r.lock("foo", timeout=2, blocking_timeout=0.2)))


async def is_an_error_at_the_end_of_a_context(r):
    lock = r.lock("foo", timeout=0.2)
    await fails(LockNotOwnedError, lambda: within(lock, lambda: asyncio.sleep(0.4)))


async def is_quiet_at_the_end_of_a_context_if_told(r):
    if "raise_on_release_error" in inspect.signature(r.lock).parameters:
        await within(r.lock("foo", timeout=0.2, raise_on_release_error=False), lambda: asyncio.sleep(0.4))


async def extends_within_a_context(r):
    lock = r.lock("foo", timeout=5)

    async def longer():
        await do(lock.extend(10))
        between(13000, await do(r.pttl("foo")), 15000)

    await within(lock, longer)


async def is_released_once(r):
    lock = r.lock("foo")
    await fails(LockError, lock.release)
    assert await do(lock.acquire(blocking=False))
    await do(lock.release())
    await fails(LockError, lock.release)


async def is_not_released_when_it_has_ended(r):
    lock, other = r.lock("foo", timeout=0.2), r.lock("foo", timeout=5)
    assert await do(lock.acquire(blocking=False))
    await asyncio.sleep(0.3)
    assert await do(other.acquire(blocking=False))
    await fails(LockNotOwnedError, lock.release)
    assert lock.local.token is None and await do(other.owned())
    await do(other.release())


async def extends(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    between(8000, await do(r.pttl("foo")), 10000)
    assert await do(lock.extend(10))
    between(16000, await do(r.pttl("foo")), 20000)
    await do(lock.release())


async def extends_to(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    assert await do(lock.extend(10, replace_ttl=True))
    between(8000, await do(r.pttl("foo")), 10000)
    await do(lock.release())


async def extends_in_fractions(r):
    lock = r.lock("foo", timeout=10.5)
    assert await do(lock.acquire(blocking=False))
    between(10400, await do(r.pttl("foo")), 10500)
    assert await do(lock.extend(10.5))
    between(20800, await do(r.pttl("foo")), 21000)
    await do(lock.release())


async def extends_often(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    began = time.monotonic()
    for _ in range(200):
        assert await do(lock.extend(0.2))
    between(50_000 - 50, await do(r.pttl("foo")) + 1000 * (time.monotonic() - began), 50_000 + 50)
    await do(lock.release())


async def does_not_extend_what_is_not_held(r):
    await fails(LockError, lambda: r.lock("foo", timeout=10).extend(10))


async def does_not_extend_what_has_no_timeout(r):
    lock = r.lock("foo")
    assert await do(lock.acquire(blocking=False))
    await fails(LockError, lambda: lock.extend(10))
    await do(lock.release())


async def does_not_extend_what_has_ended(r):
    lock = r.lock("foo", timeout=0.2)
    assert await do(lock.acquire(blocking=False))
    await asyncio.sleep(0.3)
    await fails(LockNotOwnedError, lambda: lock.extend(10))


async def reacquires(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    assert await do(r.pexpire("foo", 5000))
    assert await do(r.pttl("foo")) <= 5000
    assert await do(lock.reacquire())
    between(8000, await do(r.pttl("foo")), 10000)
    await do(lock.release())


async def does_not_reacquire_what_is_not_held(r):
    await fails(LockError, lambda: r.lock("foo", timeout=10).reacquire())


async def does_not_reacquire_what_has_no_timeout(r):
    lock = r.lock("foo")
    assert await do(lock.acquire(blocking=False))
    await fails(LockError, lock.reacquire)
    await do(lock.release())


async def does_not_reacquire_what_has_ended(r):
    lock = r.lock("foo", timeout=0.2)
    assert await do(lock.acquire(blocking=False))
    await asyncio.sleep(0.3)
    await fails(LockNotOwnedError, lock.reacquire)


async def names_itself_in_errors(r):
    assert getattr(await fails(LockError, r.lock("foo").release), "lock_name", "foo") in ("foo", None)


async def is_lost_by_a_delete(r):
    lock = r.lock("foo", timeout=10)
    assert await do(lock.acquire(blocking=False))
    assert await do(r.delete("foo")) == 1
    await fails(LockNotOwnedError, lock.release)


async def is_owned_by_its_task_alone(r):
    lock = r.lock("foo", timeout=10, thread_local=False)
    assert await do(lock.acquire(blocking=False))
    for change in (lambda other: other.release()), (lambda other: other.extend(10)), lambda other: other.reacquire():
        other = r.lock("foo", timeout=10)
        other.local.token = b"another"
        await fails(LockNotOwnedError, change(other) if inspect.iscoroutinefunction(other.release) else lambda: change(other))
    assert await do(lock.owned())
    await do(lock.release())


cases = [f for f in list(globals().values()) if inspect.iscoroutinefunction(f) and f.__name__ not in ("do", "fails", "within")]


async def main():
    passed = 0
    for connect in redis.Redis, redis.asyncio.Redis:
        for case in cases:
            r = connect(host=host, port=int(port))
            try:
                await do(r.delete("foo"))
                await case(r)
                passed += 1
            except Exception as e:
                print(connect.__module__, case.__name__, repr(e))
            await do(r.aclose() if hasattr(r, "aclose") else r.close())
    print(f"{passed} of {2 * len(cases)} cases of redis-py {redis.__version__}")
    sys.exit(passed < 2 * len(cases))


asyncio.run(main())
