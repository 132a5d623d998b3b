// Spare VMs whose guests must not rehearse a start.
import t from 'tap'
import { startWithTemplates } from './templates-app.ts'

t.test('guests of a VMM that resets no disk do not rehearse', async (t) => {
  const app = await startWithTemplates(t)
  Object.assign(app.host.driver.imaging ?? {}, { disksStayBound: true })
  await app.warmUp()
  t.equal(app.host.vm.rehearsals, 0)
  t.equal(await app.wayOf(await app.make('second')), 'from a spare VM')
  t.equal(app.lines.filter(({ msg }) => String(msg).includes('rehearsal')).length, 0, 'and nobody is told of a failure')
})
