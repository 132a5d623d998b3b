// Takes guest memory out of the stream in which QEMU saves a VM, so that memory and devices get files of their own. The rest
// is the stream that QEMU would have written without the memory: QEMU reads it back as such.
import { CaptureFailed } from '../../core/library/vmm/errors.ts'

const MAGIC = 0x5145564d
const VERSION = 3
const PAGE_BYTES = 4096
const ZERO_RECORD_BYTES = 9
const SECTION = { start: 1, part: 2, end: 3, full: 4, subsection: 5, configuration: 7, command: 8, footer: 0x7e } as const
const FLAG = { zero: 2, memorySize: 4, page: 8, end: 0x10, sameBlock: 0x20, flush: 0x200 } as const
const CAPABILITIES = 'configuration/capabilities'
// From QEMU 10.0 on, between the first part of the memory and the rest: it has no content and says nothing about the VM.
const SWITCHOVER = 11
// Many times what any QEMU writes: a machine's name, a handful of capabilities, some ten blocks.
const MAX_CONFIGURATION_BYTES = 1024
const MAX_CAPABILITIES = 64
const MAX_BLOCKS = 256

export interface RamSinks {
  /** gets a part of the rest */
  readonly state: (bytes: Buffer) => void
  /** gets a page of the memory. Pages of zeros are left out: a new file has them already */
  readonly page: (offset: number, bytes: Buffer) => void
}

/**
 * Feed it the stream in pieces. The buffers that the sinks get are parts of these pieces, and valid as long as they are.
 * What follows the section that ends the memory is passed on unparsed: nothing in it marks its parts. Everything before is parsed, so that an unknown
 * form fails the capture, and not the restore.
 */
export class RamSplitter {
  readonly #memoryId: string
  readonly #sinks: RamSinks
  #rest: Buffer = Buffer.alloc(0)
  /** reads one item, and returns whether there were enough bytes */
  #step: () => boolean = () => this.#header()
  #at = 0
  #block = ''
  /** the memory's section, once it has begun */
  #ram: number | undefined
  #ending = false
  #passing = false

  constructor (memoryId: string, sinks: RamSinks) {
    this.#memoryId = memoryId
    this.#sinks = sinks
  }

  push (chunk: Buffer): void {
    if (this.#passing) return this.#sinks.state(chunk)
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    this.#at = 0
    let start = 0
    while (this.#step()) {
      start = this.#at
      if (this.#passing) {
        this.#sinks.state(this.#rest.subarray(start))
        this.#rest = Buffer.alloc(0)
        return
      }
    }
    this.#rest = this.#rest.subarray(start)
  }

  /** Throws when the stream ended before the devices. */
  finish (): void {
    if (!this.#passing) throw CaptureFailed('QEMU\'s stream ended within the memory')
  }

  #header (): boolean {
    const found = this.#take(8)
    if (found === undefined) return false
    if (found.readUInt32BE(0) !== MAGIC || found.readUInt32BE(4) !== VERSION) throw unknown('its header')
    this.#keep(found)
    this.#step = () => this.#section()
    return true
  }

  #section (): boolean {
    const start = this.#at
    const type = this.#take(1)?.[0]
    switch (type) {
      case undefined: return false
      case SECTION.configuration: return this.#configuration(start)
      case SECTION.subsection: return this.#subsection(start)
      case SECTION.command: return this.#command(start)
      case SECTION.start: return this.#sectionStart(start)
      case SECTION.part: case SECTION.end: return this.#sectionGoesOn(start, type)
      case SECTION.full: return this.#device()
      default: throw unknown(`a part of type ${type}`)
    }
  }

  #configuration (start: number): boolean {
    const length = this.#take(4)?.readUInt32BE(0)
    if (length !== undefined && length > MAX_CONFIGURATION_BYTES) throw unknown('the configuration')
    if (length === undefined || this.#take(length) === undefined) return false
    this.#keepFrom(start)
    return true
  }

  #subsection (start: number): boolean {
    const name = this.#text()
    const head = name === undefined ? undefined : this.#take(8)
    if (head === undefined) return false
    if (name !== CAPABILITIES || head.readUInt32BE(4) > MAX_CAPABILITIES) throw unknown(`the part ${String(name)}`)
    for (let left = head.readUInt32BE(4); left > 0; left--) if (this.#text() === undefined) return false
    this.#keepFrom(start)
    return true
  }

  #command (start: number): boolean {
    const head = this.#take(4)
    if (head === undefined) return false
    if (head.readUInt16BE(0) !== SWITCHOVER || head.readUInt16BE(2) !== 0) throw unknown(`the command ${head.readUInt16BE(0)}`)
    this.#keepFrom(start)
    return true
  }

  #sectionStart (start: number): boolean {
    const id = this.#take(4)?.readUInt32BE(0)
    const name = id === undefined ? undefined : this.#text()
    if (name === undefined || this.#take(8) === undefined) return false
    if (name !== 'ram' || this.#ram !== undefined) throw unknown(`the section ${name}`)
    this.#ram = id
    this.#records(start)
    return true
  }

  #sectionGoesOn (start: number, type: number): boolean {
    const id = this.#take(4)?.readUInt32BE(0)
    if (id === undefined) return false
    if (id !== this.#ram) throw unknown(`the section ${id}`)
    this.#ending = type === SECTION.end
    this.#records(start)
    return true
  }

  /** A device that comes before the memory has ended. Only its name is known: nothing gives its length. */
  #device (): boolean {
    const name = this.#take(4) === undefined ? undefined : this.#text()
    if (name === undefined) return false
    throw unknown(`the device ${name} before the end of the memory`)
  }

  #records (start: number): void {
    this.#keepFrom(start)
    this.#step = () => this.#record()
  }

  /** One item of the memory's section: a list of blocks, a page, or the end. */
  #record (): boolean {
    if (this.#block === this.#memoryId && this.#morePages()) return true
    const start = this.#at
    const word = this.#take(8)
    if (word === undefined) return false
    const low = word.readUInt32BE(4)
    const flags = low & (PAGE_BYTES - 1)
    const offset = word.readUInt32BE(0) * 2 ** 32 + low - flags
    if (flags === FLAG.end) {
      this.#step = () => this.#footer()
    } else if (flags === FLAG.memorySize) {
      if (!this.#blocks(offset)) return false
    } else if (flags === FLAG.flush && offset === 0) {
      // A mark for several connections, which are not used. Some 8.1 versions write it nevertheless, and all versions that know it skip it.
    } else if ((flags & ~FLAG.sameBlock) === FLAG.page || (flags & ~FLAG.sameBlock) === FLAG.zero) {
      return this.#page(start, offset, flags)
    } else {
      throw unknown(`the flags 0x${flags.toString(16)}`)
    }
    this.#keepFrom(start)
    return true
  }

  #blocks (totalBytes: number): boolean {
    let count = 0
    for (let left = totalBytes; left > 0; count++) {
      if (count === MAX_BLOCKS) throw unknown('the list of memory blocks')
      const name = this.#text()
      // its size and its address
      const numbers = name === undefined ? undefined : this.#take(16)
      if (numbers === undefined) return false
      left -= Number(numbers.readBigUInt64BE(0))
      if (left < 0) throw unknown('the list of memory blocks')
    }
    return true
  }

  #page (start: number, offset: number, flags: number): boolean {
    const name = (flags & FLAG.sameBlock) === 0 ? this.#text() : this.#block
    if (name === undefined) return false
    const content = this.#take((flags & FLAG.page) !== 0 ? PAGE_BYTES : 1)
    if (content === undefined) return false
    this.#block = name
    if (name !== this.#memoryId) this.#keepFrom(start)
    else if (content.length === PAGE_BYTES) this.#sinks.page(offset, content)
    return true
  }

  /** The consecutive pages of the memory that have arrived: nearly all of the stream, so without an object for each part. */
  #morePages (): boolean {
    const rest = this.#rest
    const start = this.#at
    while (this.#at + ZERO_RECORD_BYTES <= rest.length) {
      const at = this.#at
      const low = rest.readUInt32BE(at + 4)
      const flags = low & (PAGE_BYTES - 1)
      const isPage = flags === (FLAG.page | FLAG.sameBlock)
      if (!isPage && flags !== (FLAG.zero | FLAG.sameBlock)) break
      const end = at + (isPage ? 8 + PAGE_BYTES : ZERO_RECORD_BYTES)
      if (end > rest.length) break
      if (isPage) this.#sinks.page(rest.readUInt32BE(at) * 2 ** 32 + low - flags, rest.subarray(at + 8, end))
      this.#at = end
    }
    return this.#at > start
  }

  #footer (): boolean {
    const footer = this.#take(5)
    if (footer === undefined) return false
    if (footer[0] !== SECTION.footer) throw unknown('the end of a section')
    if (footer.readUInt32BE(1) !== this.#ram) throw unknown('the end of another section')
    this.#keep(footer)
    this.#step = () => this.#section()
    this.#passing = this.#ending
    return true
  }

  #text (): string | undefined {
    const length = this.#take(1)?.[0]
    return length === undefined ? undefined : this.#take(length)?.toString('latin1')
  }

  #take (bytes: number): Buffer | undefined {
    if (this.#at + bytes > this.#rest.length) return undefined
    const taken = this.#rest.subarray(this.#at, this.#at + bytes)
    this.#at += bytes
    return taken
  }

  #keep (bytes: Buffer): void { this.#sinks.state(bytes) }

  #keepFrom (start: number): void { this.#keep(this.#rest.subarray(start, this.#at)) }
}

function unknown (what: string): Error {
  return CaptureFailed(`this QEMU writes memory in a form that is not known: ${what}`)
}
