// Which addresses are this machine's own, by what the kernel says.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ownAddresses, ownV4 } from '../../../proxy/contract/own-addresses.ts'

const LOCAL = `     |-- 10.7.0.0
        /16 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 172.17.0.0/16 2 0 2
        |-- 172.17.0.0
           /16 link UNICAST
           /32 link BROADCAST
        |-- 172.17.0.1
           /32 host LOCAL
        |-- 172.17.255.255
           /32 link BROADCAST
`

t.test('what the kernel takes for its own is what it delivers to itself whatever the packet, and not what one rule sends there', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-own-'))
  t.teardown(() => { rmSync(folder, { recursive: true }) })
  writeFileSync(join(folder, 'fib_trie'), `Id 100:\n  |-- 0.0.0.0\n     /0 host LOCAL\nMain:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\nLocal:\n  +-- 0.0.0.0/0 2 0 2\n${LOCAL}Id 101:\n  |-- 0.0.0.0\n     /0 host LOCAL\n`)
  t.same(ownV4(folder), ['10.7.0.0/16', '127.0.0.1', '172.17.0.1'])
})

t.test('what Node knows of is in it, of both families, and it is what there is where the kernel tells nothing', async (t) => {
  const known = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  for (const { address } of known.filter(({ family }) => family === 'IPv4')) t.ok(ownV4().includes(address), address)
  const { length } = known.filter(({ family }) => family === 'IPv6')
  t.ok(ownAddresses().filter((address) => address.includes(':')).length >= length)
  t.same(ownV4('/nowhere'), known.filter(({ family }) => family === 'IPv4').map(({ address }) => address).sort())
})
