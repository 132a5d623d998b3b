// Sleep and wake in a real VM: what stands still, what is set before the program goes on, and what differs between two clones of one memory.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import type { GuestLink, Workload } from '../../../plugins/guest/contract.ts'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { makeOverlay, testFolder, type Machine } from './helpers/machine.ts'
import { capture, restore, startWithMemoryFile } from './helpers/memory-image.ts'

// Counts in memory only, and says the count and what it knew from the beginning when it is asked to.
const PROGRAM = `nonce=$(busybox od -An -N8 -tx1 /dev/urandom); n=0; trap 'echo "$nonce $n" > /tmp/said.new; busybox mv /tmp/said.new /tmp/said' USR1
trap 'exit 7' TERM; echo $$ > /tmp/pid; echo up; while :; do n=$((n + 1)); busybox usleep 10000; done`
const WORKLOAD: Workload = { argv: ['/bin/sh', '-c', PROGRAM], env: {}, cwd: '/', user: '', hostname: 'box', mounts: [], agent: true }

async function linkTo (machine: Machine): Promise<GuestLink> {
  return new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
}

async function say (link: GuestLink, script: string): Promise<string> {
  const session = link.exec({ argv: ['/bin/sh', '-c', script] })
  session.stdin.end()
  const [out] = await Promise.all([text(session.stdout), session.result])
  return out.trim()
}

interface Said { readonly nonce: string, readonly count: number }

async function ask (link: GuestLink): Promise<Said> {
  const said = await say(link, 'busybox rm -f /tmp/said; kill -USR1 $(cat /tmp/pid); while [ ! -e /tmp/said ]; do busybox usleep 5000; done; cat /tmp/said')
  const at = said.lastIndexOf(' ')
  return { nonce: said.slice(0, at), count: Number(said.slice(at + 1)) }
}

async function started (link: GuestLink): Promise<void> {
  await say(link, 'while [ ! -s /tmp/pid ]; do busybox usleep 5000; done')
}

/** @param lateMs how long the call took that told the guest the time: its clock may be behind by that */
async function clockIsRight (t: Test, link: GuestLink, lateMs: number): Promise<void> {
  const before = Date.now()
  const guestMs = Number(await say(link, 'busybox date +%s')) * 1000
  t.ok(guestMs >= before - 2000 - lateMs && guestMs <= Date.now() + 1000, `the clock is right: ${guestMs - before} ms from the host's`)
}

const random = 'busybox od -An -N16 -tx1 /dev/urandom'
const ids = 'cat /proc/sys/kernel/random/boot_id /etc/machine-id'

t.setTimeout(1_400_000)

t.test('a program sleeps and wakes', { timeout: 900_000 }, async (t) => {
  const folder = await testFolder(t)
  const machine = await startWithMemoryFile(t, folder)
  let link = await linkTo(machine)
  await t.rejects(link.sleep(), { code: 'guest_refused', errno: 11 }, 'there is nothing to freeze before the workload')
  await t.rejects(link.flush(), { code: 'guest_refused', errno: 11 }, 'and nothing to flush')
  await link.run(WORKLOAD)
  await started(link)

  await t.test('what was written is on the disks after a flush, while it goes on', async (t) => {
    const dirty = async (): Promise<number> => Number(await say(link, 'while read key value unit; do [ $key = Dirty: ] && echo $value; done < /proc/meminfo'))
    await say(link, 'busybox dd if=/dev/urandom of=/root/file bs=1M count=4')
    const before = await dirty()
    await link.flush()
    t.ok(await dirty() < before - 2048, `of ${before} KB little is left`)
    t.ok((await ask(link)).count > 0)
  })

  await t.test('it stands still with its commands, and both go on', async (t) => {
    const session = link.exec({ argv: ['/bin/cat'] })
    session.stdin.write('before ')
    const before = await ask(link)
    const began = performance.now()
    await link.sleep()
    t.comment(`sleep took ${Math.round(performance.now() - began)} ms`)
    await link.sleep()
    await t.rejects(link.exec({ argv: ['/bin/true'] }).result, { code: 'guest_refused', errno: 11 })
    await sleep(6000)
    const woken = performance.now()
    await link.wake()
    t.comment(`wake took ${Math.round(performance.now() - woken)} ms`)
    const after = await ask(link)
    t.equal(after.nonce, before.nonce)
    t.ok(after.count > before.count, 'it goes on')
    const rest = await say(link, 'busybox usleep 1500000')
    t.equal(rest, '')
    const later = await ask(link)
    t.ok(after.count - before.count < 2 * (later.count - after.count), `it did not run for 6 s: ${before.count}, ${after.count}, then with 1.5 s of running ${later.count}`)
    session.stdin.end('after')
    t.equal(await text(session.stdout), 'before after', 'a command of the same link goes on too')
  })

  await t.test('the clock is right after the VM has stood still, and the uptime has not jumped', async (t) => {
    const uptime = () => say(link, 'busybox cut -d. -f1 /proc/uptime').then(Number)
    const before = await uptime()
    const began = Date.now()
    await link.sleep({ sync: false })
    await machine.qmp.run('stop')
    await sleep(4000)
    await machine.qmp.run('cont')
    const called = performance.now()
    await link.wake()
    await clockIsRight(t, link, performance.now() - called)
    const passed = await uptime() - before
    const real = (Date.now() - began) / 1000
    t.ok(passed < real - 2, `uptime went on by ${passed} s in ${real} s`)
  })

  await t.test('its name and address are set, where the instance has not its own', async (t) => {
    await say(link, 'echo "10.9.9.9 mine" > /etc/hosts')
    await link.sleep()
    await link.wake({ hostname: 'other', network: { mac: '02:00:00:00:00:07', address: '10.7.0.2/24', gateway: '10.7.0.1', dns: ['10.7.0.1'] } })
    t.equal(await say(link, 'busybox hostname; cat /etc/hostname /etc/hosts; echo $HOSTNAME'), 'other\nother\n10.9.9.9 mine\nother')
    t.match(await say(link, 'cat /etc/resolv.conf'), /nameserver 10\.7\.0\.1/)
    t.match(await say(link, 'busybox ip addr show eth0'), /02:00:00:00:00:07[^]*inet 10\.7\.0\.2\/24/)
    t.match(await say(link, 'busybox ip route'), /default via 10\.7\.0\.1/)
    await say(link, 'busybox ip addr add 192.168.5.5/24 dev eth0; busybox ip route add 172.16.0.0/12 via 10.7.0.9; busybox ip neigh add 10.7.0.9 lladdr 02:00:00:00:00:99 dev eth0')
    await link.sleep()
    await link.wake({ network: { address: '10.8.0.3/16', gateway: '10.8.0.1' } })
    const shown = await say(link, 'busybox ip addr show eth0; busybox ip route; busybox ip neigh; cat /etc/hostname')
    t.match(shown, /02:00:00:00:00:07[^]*inet 10\.8\.0\.3\/16[^]*default via 10\.8\.0\.1/)
    t.notMatch(shown, /10\.7\.0|192\.168\.5|172\.16|00:99/, 'nothing of the earlier network is left')
    t.match(shown, /other$/)
    await t.rejects(link.wake({ network: { address: '10.8.0.300/16' } }), { code: 'guest_refused', errno: 22 })
  })

  await t.test('a program cannot lead a wake astray', async (t) => {
    await say(link, 'busybox mkdir /tmp/etc; busybox mount -t tmpfs none /tmp/etc; busybox mount -o bind /tmp/etc /etc')
    await link.sleep()
    await link.wake({ hostname: 'third' })
    t.equal(await say(link, 'busybox hostname; busybox ls /tmp/etc'), 'third', 'what is mounted over /etc is not touched')
    await say(link, 'busybox umount /etc; busybox umount /tmp/etc')
    await say(link, 'busybox mkdir -p /sys/fs/cgroup/own && (busybox sh -c "echo 0 > /sys/fs/cgroup/own/cgroup.procs; exec busybox sleep 1000" > /dev/null 2>&1 &) ; busybox usleep 300000; echo 1 > /sys/fs/cgroup/own/cgroup.freeze')
    await link.sleep()
    await link.wake()
    t.equal(await say(link, 'cat /sys/fs/cgroup/own/cgroup.freeze'), '1', 'what it has frozen itself stays frozen')
    await say(link, 'echo 0 > /sys/fs/cgroup/own/cgroup.freeze')
    await link.sleep()
    link.close()
    link = await linkTo(machine)
    t.equal((await link.hello).phase, 'asleep', 'a new link finds it asleep')
    await link.wake()
    t.equal(await say(link, 'cat /sys/fs/cgroup/own/cgroup.freeze'), '0', 'groups of its own sleep and wake with it')
  })

  await t.test('a shutdown while it is asleep reaches the program', async (t) => {
    await link.sleep()
    const exited = new Promise((resolve) => { link.onExited(resolve) })
    await link.shutdown(10_000)
    t.match(await exited, { exitCode: 7, signal: 0 })
    await machine.ended
  })
  t.notMatch(await machine.console(), /Oops|BUG|Call Trace/)
})

t.test('clones of one memory', { timeout: 900_000 }, async (t) => {
  const folder = await testFolder(t)
  const template = await startWithMemoryFile(t, folder)
  const first = await linkTo(template)
  const { bootId } = await first.hello
  first.close()
  const image = await capture(template)

  await t.test('a template that waits becomes machines of their own', async (t) => {
    const made: Array<{ readonly random: string, readonly ids: string[], readonly bootId: string, readonly link: GuestLink }> = []
    for (const [name, bytes] of [['one', 512 * 2 ** 20], ['two', 2048 * 2 ** 20]] as const) {
      const place = join(folder, `disk-${name}`)
      await mkdir(place)
      const overlay = await makeOverlay(place, bytes)
      const machine = await restore(t, join(folder, name), image, { overlay })
      const link = await linkTo(machine)
      const began = performance.now()
      const running = link.run({ ...WORKLOAD, hostname: name })
      await machine.qmp.run('cont')
      await running
      const took = performance.now() - began
      t.comment(`from cont to the program's start: ${Math.round(took)} ms`)
      t.equal(await say(link, 'busybox hostname'), name)
      t.equal(Number(await say(link, 'cat /sys/block/vdb/size')) * 512, bytes, 'it sees the size of its own disk')
      await clockIsRight(t, link, took)
      await started(link)
      const found = { random: await say(link, random), ids: (await say(link, ids)).split('\n') }
      link.close()
      const again = await linkTo(machine)
      made.push({ ...found, bootId: (await again.hello).bootId, link: again })
    }
    const [one, two] = made
    if (one === undefined || two === undefined) throw new Error('two clones were made')
    t.not(one.random, two.random, 'getrandom')
    t.not(one.ids[0], two.ids[0], 'boot id')
    t.not(one.ids[1], two.ids[1], 'machine id')
    t.match(one.ids[1], /^[0-9a-f]{32}$/)
    t.equal(one.bootId, one.ids[0], 'HELLO says the boot id that programs see')
    t.not(one.bootId, bootId)
    t.not((await ask(one.link)).nonce, (await ask(two.link)).nonce, 'randomness from before the first command')
  })

  await t.test('forks of a program that was asleep go on from the same point as different machines', async (t) => {
    const other = await testFolder(t)
    const machine = await startWithMemoryFile(t, other, image.system)
    const link = await linkTo(machine)
    await link.run(WORKLOAD)
    await started(link)
    const before = await ask(link)
    const beforeIds = (await say(link, ids)).split('\n')
    await link.sleep()
    link.close()
    const taken = await capture(machine)
    const forks: Array<{ readonly said: Said, readonly random: string, readonly ids: string[] }> = []
    for (const [index, newMachine] of [false, true].entries()) {
      const clone = await restore(t, join(other, `fork-${index}`), taken)
      const host = await linkTo(clone)
      await clone.qmp.run('cont')
      t.equal((await host.hello).phase, 'asleep', 'it waits for its host')
      const began = performance.now()
      await host.wake({ hostname: `fork-${index}`, newMachine })
      const took = performance.now() - began
      t.comment(`wake took ${Math.round(took)} ms`)
      const fork = { random: await say(host, random), said: await ask(host), ids: (await say(host, ids)).split('\n') }
      t.equal(fork.said.nonce, before.nonce, 'what it knew it knows')
      t.ok(fork.said.count >= before.count)
      t.equal(await say(host, 'busybox hostname'), `fork-${index}`)
      await clockIsRight(t, host, took)
      forks.push(fork)
      const now = (await say(host, 'cat /proc/sys/kernel/random/boot_id'))
      host.close()
      const again = await linkTo(clone)
      t.equal((await again.hello).bootId, now)
      again.close()
    }
    const [same, different] = forks
    t.not(same?.random, different?.random, 'two forks differ in randomness from the first byte on')
    t.same(same?.ids, beforeIds, 'one that goes on keeps its ids')
    t.not(different?.ids[0], beforeIds[0], 'a new machine has another boot id')
    t.not(different?.ids[1], beforeIds[1], 'and another machine id')
  })
})
