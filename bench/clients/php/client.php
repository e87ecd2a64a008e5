<?php
// A lock client of Symfony: client.php LIBRARY ADDRESS cycle KEY
//                           client.php LIBRARY ADDRESS contend KEY FILE SECONDS
// See the package comment of ../main.go.

require '/usr/share/php/Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

[, , $address, $mode, $key] = $argv;

function connect(): LockFactory
{
    global $address;
    [$host, $port] = explode(':', $address);
    $redis = new Redis();
    $redis->connect($host, (int) $port, 3);
    $redis->setOption(Redis::OPT_READ_TIMEOUT, 3);

    return new LockFactory(new RedisStore($redis, 30)); // 300 s by default, which redlock serve takes with -max-ttl 6m
}

function check(bool $holds, string $what): void
{
    if (!$holds) {
        echo $what, "\n";
        exit(1);
    }
}

function cycle(string $key): void
{
    [$a, $b] = [connect(), connect()];
    $first = $a->createLock($key, 3, false);
    $second = $b->createLock($key, 0.4, false);
    check($first->acquire(), 'acquire');
    check(!$second->acquire(), 'a taken lock was granted');
    $first->refresh(5);
    check($first->isAcquired() && !$second->isAcquired(), 'is acquired');
    check($first->getRemainingLifetime() > 4, 'the rest');
    check($first->acquire(), 'acquire again, which extends');
    $first->release();
    check(!$first->isAcquired(), 'is released');
    check($second->acquire(), 'acquire after release');
    check(!$first->acquire(), 'a taken lock was granted again');
    usleep(600_000);
    check($first->acquire(), 'it does not expire');
    check($second->isExpired() && !$second->isAcquired(), 'it has expired');
    $second->release(); // of a lock that another holds
    check($first->isAcquired(), 'another has released it');
    $first->release();
    echo "ok\n";
}

function contend(string $key, string $file, float $seconds): void
{
    $count = ['grants' => 0, 'overlaps' => 0, 'errors' => 0];
    $locks = null;
    for ($end = microtime(true) + $seconds; microtime(true) < $end;) {
        usleep(random_int(2000, 10000));
        try {
            $locks ??= connect();
            $lock = $locks->createLock($key, 2, false);
            $began = microtime(true);
            if (!$lock->acquire()) {
                continue;
            }
            if (microtime(true) - $began < 1) {
                ++$count['grants'];
                if ($f = @fopen($file, 'x')) {
                    fclose($f);
                    usleep(2000);
                    unlink($file);
                } else {
                    ++$count['overlaps'];
                }
            }
            $lock->release();
        } catch (Throwable) {
            ++$count['errors'];
            $locks = null;
        }
    }
    echo json_encode($count), "\n";
}

$mode === 'cycle' ? cycle($key) : contend($key, $argv[5], (float) $argv[6]);
