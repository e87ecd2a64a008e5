// The rate of redis-semaphore on one server: 64 callers, 8 permits.
//
//	NODE_PATH=bench/clients/node/node_modules node bench/clients/node/semaphore.mjs PORT SECONDS HOLD_MS [RETRY_MS]
import { createRequire } from 'node:module'
const require = createRequire(process.env.NODE_PATH + '/')
const Redis = require('ioredis')
const { Semaphore } = require('redis-semaphore')
const [port, seconds, hold, retry] = process.argv.slice(2).map(Number)
const client = new Redis(port)
await client.ping()
const end = Date.now() + seconds * 1000
let n = 0
const options = { lockTimeout: 20000, acquireTimeout: 60000, retryInterval: retry || 10 }
await Promise.all(Array.from({ length: 64 }, async () => {
  while (Date.now() < end) {
    const semaphore = new Semaphore(client, 'permits', 8, options)
    await semaphore.acquire()
    n++
    if (hold > 0) await new Promise(done => setTimeout(done, hold))
    await semaphore.release()
  }
}))
console.log(`redis-semaphore ${require('redis-semaphore/package.json').version}, one server, 64 callers, 8 permits, held for ${hold} ms: ${Math.round(n / seconds)} permits/s`)
client.disconnect()
