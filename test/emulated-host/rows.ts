// What the long tests play on an emulated host. Each takes minutes, and a processor of its own, so a commit has one of them.
import { PARTS } from '../contracts/hypervisor/parts.ts'
import { playsWholeTables, shareOfCommit } from '../../setup/test/share-of-commit.ts'

/** the scenario of all drivers, with QEMU under KVM */
export const SCENARIO_ROW = 'scenario'
/** a card that is given to an instance */
export const CARD_ROW = 'card'
/** besides these, parts of the conformance suite of QEMU's driver, under KVM */
const ROWS: readonly string[] = [SCENARIO_ROW, CARD_ROW, ...PARTS]

/** of this commit */
export const rows = shareOfCommit(ROWS, ROWS.length)
const parts = PARTS.filter((part) => rows.includes(part))
/** Each host takes some 17 s before its first case, so parts of a whole table share hosts. */
const HOSTS = 4
/** the parts of the conformance suite, by the host that plays them */
export const partsOfHosts: readonly (readonly string[])[] = playsWholeTables ? Array.from({ length: HOSTS }, (_none, host) => parts.filter((_part, index) => index % HOSTS === host)) : parts.map((part) => [part])
/** why a test is left out; `BERTH_WHOLE_TABLES=1` plays all */
export const NOT_NOW = 'another commit has it: of the tests on an emulated host each has one'
