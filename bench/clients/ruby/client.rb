# A lock client of redis-rb, which has no locks, as its users write one: client.rb LIBRARY ADDRESS cycle KEY
#                                                                       client.rb LIBRARY ADDRESS contend KEY FILE SECONDS
# See the package comment of ../main.go.

require "json"
require "redis"
require "securerandom"

_, address, mode, key, file, seconds = ARGV
HOST, PORT = address.split(":")

RELEASE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'
EXTEND = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'

def connect = Redis.new(host: HOST, port: PORT.to_i, timeout: 3, reconnect_attempts: 0)

def check(holds, what)
  return if holds

  puts what
  exit 1
end

def cycle(key)
  a, b = connect, connect
  check a.set(key, "a", nx: true, px: 3000), "acquire"
  check !b.set(key, "b", nx: true, px: 3000), "a taken lock was granted"
  check a.eval(EXTEND, keys: [key], argv: ["a", 5000]) == 1, "extend"
  check a.pttl(key).between?(4001, 5000), "the rest"
  check b.eval(RELEASE, keys: [key], argv: ["b"]) == 0, "another has released it"
  check a.eval(RELEASE, keys: [key], argv: ["a"]) == 1, "release"
  check b.set(key, "b", nx: true, px: 400), "acquire after release"
  sleep 0.6
  check a.set(key, "a", nx: true, ex: 3), "it does not expire"
  check a.watch(key) { a.get(key) == "a" && a.multi { |m| m.del(key) } } == [1], "release in a transaction"
  puts "ok"
end

def contend(key, file, seconds)
  count = { grants: 0, overlaps: 0, errors: 0 }
  now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  finish = now.call + seconds
  client = connect
  while now.call < finish
    sleep rand(0.002..0.01)
    begin
      token, began = SecureRandom.hex, now.call
      next unless client.set(key, token, nx: true, px: 2000)

      if now.call - began < 1
        count[:grants] += 1
        begin
          File.open(file, File::CREAT | File::EXCL).close
          sleep 0.002
          File.unlink(file)
        rescue SystemCallError
          count[:overlaps] += 1
        end
      end
      client.eval(RELEASE, keys: [key], argv: [token])
    rescue Redis::BaseError
      count[:errors] += 1
    end
  end
  puts JSON.generate(count)
end

mode == "cycle" ? cycle(key) : contend(key, file, seconds.to_f)
