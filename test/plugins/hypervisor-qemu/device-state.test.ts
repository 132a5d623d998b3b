// A state of devices alone gets the section by which QEMU knows that it fits the machine.
import t from 'tap'
import { wholeState } from '../../../plugins/hypervisor-qemu/device-state.ts'
import { RamSplitter } from '../../../plugins/hypervisor-qemu/ram-stream.ts'

const HEADER = Buffer.from('5145564d00000003', 'hex')
const DEVICES = Buffer.from('04 00000001 03 637075 00000000 00000001 00', 'utf8')

t.test('the machine and what both sides must agree on come before the devices, and a description after them', async (t) => {
  const state = wholeState('pc-q35-10.0', Buffer.concat([HEADER, DEVICES]))
  t.equal(state.subarray(0, 8).toString('hex'), HEADER.toString('hex'))
  t.equal(state.subarray(8, 24).toString('latin1'), '\x07\0\0\0\x0bpc-q35-10.0')
  const capabilities = state.subarray(24)
  t.equal(capabilities.subarray(0, 28).toString('latin1'), '\x05\x1aconfiguration/capabilities')
  t.equal(capabilities.subarray(28, 52).toString('latin1'), '\0\0\0\x01\0\0\0\x01\x0fx-ignore-shared')
  t.ok(capabilities.subarray(52, 52 + DEVICES.length).equals(DEVICES))
  t.equal(capabilities.subarray(52 + DEVICES.length).toString('latin1'), '\x06\0\0\0\x02{}')
})

t.test('it has no memory, in which a capture would look for pages', async (t) => {
  const splitter = new RamSplitter('memory', { state () {}, page () { throw new Error('there is no page') } })
  t.throws(() => splitter.push(wholeState('microvm', Buffer.concat([HEADER, Buffer.of(4, 0, 0, 0, 1, 3), Buffer.from('cpu')]))), /the device cpu before the end of the memory/)
})

t.test('what is not QEMU\'s state is refused', async (t) => {
  t.throws(() => wholeState('pc', Buffer.from('something else')), { code: 'vm_capture_failed' })
  t.throws(() => wholeState('pc', Buffer.alloc(0)), { code: 'vm_capture_failed' })
})
