// What `npm run conformance` prints of a suite's output.
import t from 'tap'
import { GROUPS } from '../hypervisor.ts'
import { PARTS } from '../hypervisor/parts.ts'
import { DRIVERS } from './drivers.ts'
import { leftOut, lineOf, rowsOf, totals } from './table.ts'

const TAP = `TAP version 14
# Subtest: probe
    ok 1 - one thing
    1..1
ok 1 - probe
# Subtest: images
    # Subtest: capture
        not ok 1 - another
        1..1
    not ok 1 - capture
    1..1
not ok 2 - images
ok 3 - memory that goes back # SKIP the driver has no balloon
1..3
`

t.test('each case is a row: how it was run and how it went, or why it is not supported', async (t) => {
  t.same(rowsOf('x', 'real', TAP).map(lineOf), ['x | probe | real | passed', 'x | images > capture | real | failed', 'x | memory that goes back | unsupported | not run: the driver has no balloon'])
})

t.test('a suite without its program is one row with the reason, and not a passed one', async (t) => {
  const rows = rowsOf('x', 'real', 'TAP version 14\n1..0 # no Cloud Hypervisor: it is not here\n')
  t.same(rows.map(lineOf), ['x | all | real | not run: no Cloud Hypervisor: it is not here'])
  t.match(rowsOf('x', 'real', 'TAP version 14\n'), [{ name: 'all', outcome: 'failed' }], 'one that said nothing has failed')
  t.same(leftOut([...rows, ...rowsOf('y', 'real', TAP), ...rowsOf('z', 'double', 'TAP version 14\n1..0 # no z\n')]), ['x'])
})

t.test('a double never counts as real', async (t) => {
  const rows = [...rowsOf('x', 'double', TAP), ...rowsOf('y', 'real', TAP)]
  t.same(totals(rows), ['double: 1 passed, 1 failed', 'unsupported: 2', 'real: 1 passed, 1 failed'])
})

t.test('all hypervisors are in it', async (t) => {
  t.same([...DRIVERS.keys()].sort(), ['cloud-hypervisor', 'firecracker', 'qemu', 'qemu-microvm', 'vz'])
})

t.test('the parts of the suite have each of its groups once', async (t) => {
  t.same(PARTS.flatMap((part) => part.split(',')).sort(), Object.keys(GROUPS).sort())
})
