// The arguments of `npm run bench --`.
import t from 'tap'
import { parseArguments } from '../../bench/options.ts'

const parse = (...args: readonly string[]): unknown => parseArguments(args, ['create', 'api'], ['create'])

t.test('without options a benchmark measures ten times, and its VMs run under what there is', async (t) => {
  t.match(parse('create', 'api'), { names: ['create', 'api'], runs: 10, accelerator: 'auto' })
})

t.test('an accelerator is taken by the benchmarks that are made for one', async (t) => {
  for (const accelerator of ['auto', 'tcg', 'kvm']) t.match(parse('create', '--accelerator', accelerator, '--runs', '2'), { names: ['create'], runs: 2, accelerator })
})

t.test('a benchmark that takes no accelerator refuses one by its name, also beside one that takes it', async (t) => {
  for (const accelerator of ['tcg', 'kvm']) t.throws(() => parse('create', 'api', '--accelerator', accelerator), { message: `--accelerator ${accelerator}: the benchmark api takes none` })
  t.match(parse('api', '--accelerator', 'auto'), { accelerator: 'auto' }, 'what there is, it takes anyway')
})

t.test('an accelerator that there is not is refused with those that there are', async (t) => {
  t.throws(() => parse('create', '--accelerator', 'hvf'), { message: '--accelerator hvf: one of auto, tcg, kvm is wanted' })
})

t.test('a hypervisor that runs under KVM alone is taken with KVM only, and one that there is not is refused', async (t) => {
  t.match(parse('create'), { hypervisor: 'qemu' })
  t.match(parse('create', '--accelerator', 'kvm', '--hypervisor', 'firecracker'), { accelerator: 'kvm', hypervisor: 'firecracker' })
  for (const accelerator of ['auto', 'tcg']) {
    t.throws(() => parse('create', '--accelerator', accelerator, '--hypervisor', 'firecracker'), { message: '--hypervisor firecracker: it runs under KVM alone, so --accelerator kvm is wanted' })
  }
  t.throws(() => parse('create', '--hypervisor', 'bochs'), { message: '--hypervisor bochs: one of qemu, firecracker, cloud-hypervisor is wanted' })
})

t.test('numbers, and names of benchmarks, are checked', async (t) => {
  t.throws(() => parse('create', '--runs', '0'), { message: '--runs 0: a whole number from 1 on is wanted' })
  t.throws(() => parse('create', '--seconds', 'x'), { message: '--seconds x: a whole number from 1 on is wanted' })
  t.throws(() => parse('other'), { message: 'there is no benchmark other' })
  t.throws(() => parse(), { message: 'no benchmark is named' })
})
