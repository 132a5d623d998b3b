// Half of the contract that the QEMU driver keeps, the other half for another commit.
import { PARTS } from '../../contracts/hypervisor/parts.ts'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'

process.env['BERTH_CONFORMANCE_CASES'] ??= shareOfCommit(PARTS, 2).join(',')
await import('./conformance.js')
