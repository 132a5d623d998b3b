// A failed upgrade whose way back is barred in part.
import t from 'tap'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { testFolder } from '../../helpers/folder.ts'
import { changeWorld, smallCheckout, treeOf, worldOf } from './small-checkout.ts'

t.test('a failed upgrade whose database cannot be brought back starts the services of before all the same, and says what is to be done', async (t) => {
  const folder = testFolder(t)
  const old = await smallCheckout(join(folder, 'old'), { name: 'old', schema: 1, units: [] })
  const next = await smallCheckout(join(folder, 'next'), { name: 'next', schema: 2, units: [] })
  const root = join(folder, 'root')
  for (const path of ['usr/bin', 'usr/lib']) await mkdir(join(root, path), { recursive: true })
  await old.install(root)
  const tree = treeOf(root).filter(line => !line.startsWith('usr/lib/berth.berth-journal '))
  changeWorld(root, (world) => { Object.assign(world, { broken: 'next', isShared: true }) })
  const [steps, said]: [string[], string[]] = [[], []]
  await t.rejects(next.install(root, async (step) => { steps.push(step) }, (line) => { said.push(line) }), /did not come up/)
  const back = steps.slice(steps.findIndex(step => step.endsWith('berth.yaml 1')))
  t.same(back.filter(step => step.startsWith('systemctl restart')), ['systemctl restart berth-egress.service', 'systemctl restart berth.service'])
  t.match(worldOf(root), { running: { 'berth-egress.service': 'old' }, database: { schema: 2 } })
  t.match(said.join('\n'), /the database could not be brought back: the server of host other uses the database[^]*servers of all other hosts[^]*restore-database --config \/etc\/berth\/berth.yaml 1\n/)
  t.match(said.join('\n'), /berth\.service did not come up/, 'and that the server of before refuses it')
  t.same(treeOf(root).filter(line => !line.startsWith('usr/lib/berth.berth-journal ')), tree)

  changeWorld(root, (world) => { world.isShared = false })
  await t.rejects(next.install(root), /did not come up/)
  t.match(worldOf(root), { running: { 'berth.service': 'old', 'berth-egress.service': 'old' }, database: { schema: 1 } }, 'the next installation goes on with what is left to be done')
  t.same(treeOf(root), tree)
})
