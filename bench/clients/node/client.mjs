// A lock client of one library: node client.mjs LIBRARY ADDRESS cycle KEY
//                               node client.mjs LIBRARY ADDRESS contend KEY FILE SECONDS
// See the package comment of ../main.go.
import { createRequire } from 'node:module';
import { openSync, closeSync, unlinkSync } from 'node:fs';
import { randomUUID } from 'node:crypto';

const require = createRequire(import.meta.url);
const [library, address, mode, key, file, seconds] = process.argv.slice(2);
const [host, port] = address.split(':');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const releaseScript = `
local owner = redis.call('get', KEYS[1])
if owner == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0`;
const extendScript = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`;

function ioredis(name) {
  const module = require(name);
  const Redis = module.default ?? module.Redis ?? module;
  const client = new Redis({ host, port: Number(port), maxRetriesPerRequest: 2, retryStrategy: () => 50 });
  client.on('error', () => {}); // the front end is killed now and then
  return client;
}

async function nodeRedis(name) {
  const client = require(name).createClient({ socket: { host, port: Number(port), reconnectStrategy: () => 50 } });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const several = (k) => [k, k + ':b', k + ':c'];

const must = (ok, what) => { if (!ok) throw new Error(what); };

// Each library as acquire(key, ttl) -> lock or null, extend(lock, ttl), release(lock).
const libraries = {
  async ioredis(name = 'ioredis') {
    const client = ioredis(name);
    return {
      async acquire(k, ttl) {
        const value = randomUUID();
        return (await client.set(k, value, 'PX', ttl, 'NX')) === 'OK' ? { k, value } : null;
      },
      async extend(l, ttl) { must(await client.eval(extendScript, 1, l.k, l.value, ttl) === 1, 'extend'); },
      async release(l) { must(await client.eval(releaseScript, 1, l.k, l.value) === 1, 'release'); },
    };
  },
  ioredis6: () => libraries.ioredis('ioredis6'),
  async redis4(name = 'redis4') {
    const client = await nodeRedis(name);
    return {
      async acquire(k, ttl) {
        const value = randomUUID();
        return (await client.set(k, value, { NX: true, PX: ttl })) === 'OK' ? { k, value } : null;
      },
      async extend(l, ttl) { must(await client.eval(extendScript, { keys: [l.k], arguments: [l.value, String(ttl)] }) === 1, 'extend'); },
      async release(l) { must(await client.eval(releaseScript, { keys: [l.k], arguments: [l.value] }) === 1, 'release'); },
    };
  },
  redis6: () => libraries.redis4('redis6'),
  async redlock4() {
    const redlock = new (require('redlock4'))([ioredis('ioredis')], { retryCount: 0, clockSyncDriftFactor: 0 });
    redlock.on('clientError', () => {});
    return {
      acquire: (k, ttl) => redlock.lock(k, ttl).catch(refusedBy((e) => e.name === 'LockError' && e.attempts >= 1)),
      async extend(l, ttl) { await l.extend(ttl); },
      async release(l) { await l.unlock(); },
    };
  },
  async redlock5(name = 'redlock5', keys = (k) => [k]) {
    const module = await import(name);
    const redlock = new (module.Redlock ?? module.default)([ioredis('ioredis')], { retryCount: 0, automaticExtensionThreshold: 50 });
    redlock.on('error', () => {});
    return {
      acquire: (k, ttl) => redlock.acquire(keys(k), ttl).catch(refusedBy((e) => /^(Execution|ResourceLocked)Error$/.test(e.constructor.name))),
      async extend(l, ttl) { await l.extend(ttl); },
      async release(l) { await l.release(); },
    };
  },
  'redlock5-several': () => libraries.redlock5('redlock5', several), // several keys are one lock
  sesamecare: () => libraries.redlock5('@sesamecare-oss/redlock'),
  'sesamecare-several': () => libraries.redlock5('@sesamecare-oss/redlock', several),
  async 'redis-semaphore'() {
    const { Mutex } = require('redis-semaphore');
    const client = ioredis('ioredis');
    return {
      async acquire(k, ttl) {
        const mutex = new Mutex(client, k, { lockTimeout: ttl, acquireAttemptsLimit: 1, refreshInterval: 0 });
        return (await mutex.tryAcquire()) ? mutex : null;
      },
      async extend(m) { must(await m._refresh(), 'extend'); },
      async release(m) { await m.release(); },
    };
  },
  async 'ioredis-lock'() {
    const locks = require('ioredis-lock');
    const client = ioredis('ioredis');
    return {
      async acquire(k, ttl) {
        const lock = locks.createLock(client, { timeout: ttl, retries: 0 });
        return lock.acquire(k).then(() => lock).catch(refusedBy((e) => e.name === 'LockAcquisitionError'));
      },
      async extend(l, ttl) { await l.extend(ttl); },
      async release(l) { await l.release(); },
    };
  },
  async 'redlock-universal'() {
    const { createLock, IoredisAdapter } = await import('redlock-universal');
    const adapter = new IoredisAdapter(ioredis('ioredis'));
    return {
      async acquire(k, ttl) {
        const lock = createLock({ adapter, key: k, ttl, retryAttempts: 0 });
        return lock.acquire().then((handle) => ({ lock, handle })).catch(refusedBy((e) => e.name === 'LockAcquisitionError'));
      },
      async extend(l, ttl) { must(await l.lock.extend(l.handle, ttl), 'extend'); },
      async release(l) { must(await l.lock.release(l.handle), 'release'); },
    };
  },
};

// refusedBy makes null of the error that a library has for a lock which is taken.
function refusedBy(isRefusal) {
  return (e) => { if (isRefusal(e)) return null; throw e; };
}

async function cycle() {
  const a = await libraries[library](), b = await libraries[library]();
  const first = await a.acquire(key, 3000);
  must(first, 'acquire');
  must(!(await b.acquire(key, 3000)), 'a taken lock was granted');
  await a.extend(first, 4000);
  await a.release(first);
  must(await b.acquire(key, 400), 'acquire after release');
  must(!(await a.acquire(key, 400)), 'a taken lock was granted again');
  let last = null;
  for (const end = Date.now() + 5000; !last && Date.now() < end; await sleep(50)) last = await a.acquire(key, 3000);
  must(last, 'it does not expire');
  await a.release(last);
  console.log('ok');
}

async function contend() {
  const locks = await libraries[library]();
  const count = { grants: 0, overlaps: 0, errors: 0 };
  for (const end = Date.now() + 1000 * seconds; Date.now() < end; await sleep(2 + 8 * Math.random())) {
    try {
      const began = Date.now(), lock = await locks.acquire(key, 2000);
      if (!lock) continue;
      if (Date.now() - began < 1000) {
        count.grants++;
        try {
          closeSync(openSync(file, 'wx'));
          await sleep(2);
          unlinkSync(file);
        } catch { count.overlaps++; }
      }
      await locks.release(lock);
    } catch { count.errors++; }
  }
  console.log(JSON.stringify(count));
}

try {
  await (mode === 'cycle' ? cycle() : contend());
  process.exit(0);
} catch (e) {
  console.log(e?.stack ?? e, ...(e?.attempts ? await Promise.all(e.attempts.map?.(async (x) => [...(await x).votesAgainst.values()].join())) : []));
  process.exit(1);
}
