// Why a VMM could not have its TAP, in words that name it.
import t from 'tap'
import { tapProblem } from '../../../../core/library/vmm/network.ts'

const network = { namespace: '/run/netns/x', tap: 'tap1', mac: '02:00:00:00:00:01' }

await t.test('trap, a TAP that is missing: the VMM says only that it may not, and its words are explained', async (t) => {
  // Cloud Hypervisor 53.0, as it said it.
  t.equal(tapProblem('Error from device manager: Cannot create virtio-net device: Failed to open taps: Open tap device failed: Unable to configure tap interface: Operation not permitted (os error 1)', network),
    'the namespace /run/netns/x has no TAP tap1 for the VM\'s user')
  t.equal(tapProblem('Open tap device failed: Device or resource busy (os error 16)', network), 'another process uses the TAP tap1')
})

await t.test('what is about something else stays as it is', async (t) => {
  t.equal(tapProblem('Cannot open the disk: Operation not permitted', network), undefined)
  t.equal(tapProblem('Failed to open taps: Couldn\'t open /dev/net/tun: Permission denied (os error 13)', network), undefined)
})
