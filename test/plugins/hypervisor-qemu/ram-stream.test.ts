// Guest memory is taken out of QEMU's stream, however that is cut into pieces.
import t from 'tap'
import { RamSplitter } from '../../../plugins/hypervisor-qemu/ram-stream.ts'

const PAGE = 4096
const word = (value: number): Buffer => { const bytes = Buffer.alloc(8); bytes.writeBigUInt64BE(BigInt(value)); return bytes }
const int = (value: number): Buffer => word(value).subarray(4)
const name = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
const page = (fill: number): Buffer => Buffer.alloc(PAGE, fill)
const bytes = (...parts: Array<Buffer | number>): Buffer => Buffer.concat(parts.map((part) => typeof part === 'number' ? Buffer.from([part]) : part))

const header = bytes(int(0x5145564d), int(3), 7, int(3), Buffer.from('q35'), 5, name('configuration/capabilities'), int(1), int(1), name('x-ignore-shared'))
const footer = bytes(0x7e, int(2))
const end = bytes(word(0x10), footer)
const blocks = bytes(word(5 * PAGE | 4), name('memory'), word(4 * PAGE), word(0), name('bios'), word(PAGE), word(0xf0000))
const setup = bytes(1, int(2), name('ram'), int(0), int(4), blocks, end)
const biosPage = bytes(word(0 | 8), name('bios'), page(9))
const devices = bytes(4, Buffer.from('devices, whose bytes may look like \x02 anything'))
/** what QEMU sends, and what is left of it */
const stream = bytes(
  header, setup,
  2, int(2), word(0 | 8), name('memory'), page(1), word(PAGE | 0x20 | 2), 0, word(2 * PAGE | 0x20 | 8), page(2), biosPage, end,
  3, int(2), word(3 * PAGE | 8), name('memory'), page(3), end,
  devices
)
const rest = bytes(header, setup, 2, int(2), biosPage, end, 3, int(2), end, devices)

function split (input: Buffer, pieceBytes: number): { state: Buffer, pages: Map<number, number> } {
  const state: Buffer[] = []
  const pages = new Map<number, number>()
  const splitter = new RamSplitter('memory', {
    state: (part) => state.push(Buffer.from(part)),
    page: (offset, content) => {
      if (content.length !== PAGE || !content.every((byte) => byte === content[0])) throw new Error('not one page')
      if (pages.has(offset)) throw new Error('twice')
      pages.set(offset, content[0] ?? 0)
    }
  })
  for (let at = 0; at < input.length; at += pieceBytes) splitter.push(input.subarray(at, at + pieceBytes))
  splitter.finish()
  return { state: Buffer.concat(state), pages }
}

await t.test('pages of the memory go to their places, zero pages nowhere, and all else stays, in pieces of any size', async (t) => {
  for (const pieceBytes of [1, 7, 100, PAGE, PAGE + 1, stream.length]) {
    const { state, pages } = split(stream, pieceBytes)
    t.same([...pages], [[0, 1], [2 * PAGE, 2], [3 * PAGE, 3]], `pieces of ${pieceBytes} bytes`)
    t.ok(state.equals(rest))
  }
})

await t.test('the word that QEMU 10 sends before the rest of the memory, and the one that some of 8.1 send, stay where they are', async (t) => {
  const switchover = bytes(8, Buffer.from([0, 11, 0, 0]))
  const first = bytes(1, int(2), name('ram'), int(0), int(4), blocks, word(0x200), end)
  const input = bytes(
    header, first,
    2, int(2), word(0 | 8), name('memory'), page(1), end,
    switchover,
    // what is the same block is the one before the word
    3, int(2), word(PAGE | 0x20 | 8), page(2), biosPage, word(2 * PAGE | 8), name('memory'), page(3), end,
    devices
  )
  for (const pieceBytes of [1, 7, PAGE, input.length]) {
    const { state, pages } = split(input, pieceBytes)
    t.same([...pages], [[0, 1], [PAGE, 2], [2 * PAGE, 3]], `pieces of ${pieceBytes} bytes`)
    t.ok(state.equals(bytes(header, first, 2, int(2), end, switchover, 3, int(2), biosPage, end, devices)))
  }
})

await t.test('a stream that ends too early, and one that is not known, are refused', async (t) => {
  const cases: ReadonlyArray<readonly [what: string, stream: Buffer]> = [
    ['cut', stream.subarray(0, stream.length - devices.length - 1)],
    ['empty', Buffer.alloc(0)],
    ['another format', bytes(int(0x51455600), int(3), devices)],
    ['another version', bytes(int(0x5145564d), int(4), devices)],
    ['another part of the configuration', bytes(header.subarray(0, 8), 5, name('other'), int(1), int(1))],
    ['another section', bytes(header, 1, int(2), name('disk'), int(0), int(4), end)],
    ['compressed pages', bytes(header, setup, 2, int(2), word(0x100), devices)],
    ['a block list that does not add up', bytes(header, 1, int(2), name('ram'), int(0), int(4), word(PAGE | 4), name('memory'), word(2 * PAGE), word(0))],
    ['a block list without end', bytes(header, 1, int(2), name('ram'), int(0), int(4), word(PAGE | 4), ...Array.from({ length: 300 }, () => bytes(name('x'), word(0), word(0))))],
    ['a configuration without end', bytes(header.subarray(0, 8), 7, int(2 ** 31), devices)],
    ['capabilities without end', bytes(header.subarray(0, 8), 5, name('configuration/capabilities'), int(1), int(2 ** 31))],
    ['another command', bytes(header, setup, 8, Buffer.from([0, 7, 0, 4]), devices)],
    ['a command with content', bytes(header, setup, 8, Buffer.from([0, 11, 0, 1]), devices)],
    ['a device before the memory', bytes(header, 4, int(1), name('virtio-mem'), int(0), int(1), devices)],
    ['a device within the memory', bytes(header, setup, 2, int(2), end, devices)],
    ['the memory twice', bytes(header, setup, setup, devices)],
    ['a section that has not begun', bytes(header, setup, 2, int(3), end)],
    ['the end of another section', bytes(header, setup.subarray(0, setup.length - 1), 3, devices)],
    ['the end of the stream within the memory', bytes(header, setup, 0)],
    ['no footer', bytes(header, setup.subarray(0, setup.length - 5), devices)]
  ]
  for (const [what, input] of cases) t.throws(() => split(input, 50), { code: 'vm_capture_failed' }, what)
  t.throws(() => split(bytes(header, 4, int(1), name('virtio-mem'), int(0), int(1)), 50), { message: /the device virtio-mem before the end of the memory/ }, 'by name')
})
