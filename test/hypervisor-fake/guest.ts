// A guest without a kernel: answers the agent protocol as berth-init does, as far as lifecycle tests need it.
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { FieldWriter, Tag } from '../../plugins/guest/link/fields.ts'
import { FrameType } from '../../plugins/guest/link/frames.ts'
import { frame, HostReader, readFields, type Frame } from './frames.ts'
import { refusal, startProgram, type Ending, type Program } from './program.ts'
import type { FakeVmmOrder, SavedGuest } from './script.ts'

const SIGKILL = 9
const SIGTERM = 15

export class FakeGuest {
  readonly #order: FakeVmmOrder
  readonly #write: (text: string) => void
  readonly #powerOff: () => void
  readonly #isPaused: () => boolean
  readonly #report: (text: string) => void
  readonly #bootId: string
  readonly #start = Date.now()
  #phase = 'waiting'
  #agent = true
  #host: Duplex | undefined
  #argv: readonly string[] = []
  #program: Program | undefined
  #ending: Ending | undefined

  /** @param write appends to the output file @param powerOff ends the VMM once the host has been told all @param isPaused whether the VM stands still @param report takes the last word in the place of its file */
  constructor (order: FakeVmmOrder, write: (text: string) => void, powerOff: () => void, isPaused: () => boolean, report = (text: string) => appendFileSync(order.files.report, text)) {
    this.#order = order
    this.#write = write
    this.#powerOff = powerOff
    this.#isPaused = isPaused
    this.#report = report
    const { saved } = order
    this.#bootId = saved?.bootId ?? randomUUID()
    if (saved === undefined) return
    this.#phase = saved.phase
    this.#agent = saved.agent
    if (saved.phase === 'running') this.#begin(saved.argv, saved.memory)
  }

  /** What a memory image holds of it. */
  save (): SavedGuest {
    return { bootId: this.#bootId, phase: this.#phase, agent: this.#agent, argv: this.#argv, memory: this.#program?.memory ?? '' }
  }

  /** The VMM ends without a word from it. For guests that share their process: those of others end with theirs. */
  stop (): void {
    this.#phase = 'exiting'
    this.#program?.kill(SIGKILL)
  }

  /** A host has opened the agent's stream. */
  serve (socket: Duplex): void {
    const reader = new HostReader()
    this.#host = socket
    socket.on('error', () => {})
    socket.on('close', () => { if (this.#host === socket) this.#host = undefined })
    // What comes before the greeting is answered after it: a host takes nothing that precedes that.
    let early: Frame[] | undefined = []
    const greeted = (): void => {
      const frames = early ?? []
      early = undefined
      for (const got of frames) this.#take(got)
    }
    socket.on('data', (chunk: Buffer) => {
      for (const got of reader.push(chunk)) {
        if ('sync' in got) this.#greet(socket, got.sync, greeted)
        else if (early === undefined) this.#take(got)
        else early.push(got)
      }
    })
  }

  #greet (socket: Duplex, sync: Buffer, greeted: () => void): void {
    const { greeting, bootDelayMs = 0 } = this.#order.script
    if (greeting !== undefined) {
      if (greeting === 'garbage') socket.write(Buffer.alloc(65_536, 0xff))
      return greeted()
    }
    setTimeout(() => {
      socket.write(Buffer.concat([sync, this.#hello()]))
      greeted()
    }, this.#start + bootDelayMs - Date.now())
  }

  #hello (): Buffer {
    const fields = new FieldWriter().add(Tag.protocol, 1).add(Tag.phase, this.#phase).add(Tag.kernel, 'fake').add(Tag.bootId, this.#bootId)
      .add(Tag.memoryTotal, this.#order.memoryBytes).add(Tag.uptimeMs, Date.now() - this.#start).add(Tag.agent, this.#agent)
    if (this.#ending !== undefined) addEnding(fields, this.#ending)
    return frame(FrameType.hello, 0, fields)
  }

  #take ({ type, channel, payload }: Frame): void {
    if (type !== FrameType.open) return
    const fields = readFields(payload)
    const text = (tag: number): string => fields.find(([found]) => found === tag)?.[1].toString() ?? ''
    switch (text(Tag.kind)) {
      case 'run': this.#run(channel, fields).catch((error: unknown) => { throw error }); break
      case 'shutdown':
        this.#result(channel, new FieldWriter())
        if (this.#order.script.ignoresShutdown !== true) this.#shutDown()
        break
      case 'rehearse':
        if (this.#phase === 'waiting') this.#result(channel, new FieldWriter())
        else this.#refuse(channel, 114, 'this guest has its workload already')
        break
      case 'bind':
        if (this.#phase === 'waiting') this.#result(channel, new FieldWriter())
        else this.#refuse(channel, 114, 'this guest has its workload already')
        break
      case 'exec': this.#exec(channel, fields); break
      case 'stat': this.#result(channel, new FieldWriter().add(Tag.exists, false)); break
      default: this.#refuse(channel, 95, `the fake guest has no ${text(Tag.kind)}`)
    }
  }

  async #run (channel: number, fields: ReturnType<typeof readFields>): Promise<void> {
    if (this.#phase !== 'waiting') return this.#refuse(channel, 16, 'a program runs already')
    this.#phase = 'starting'
    this.#agent = fields.find(([tag]) => tag === Tag.agent)?.[1].readUInt8(0) !== 0
    if (this.#order.script.runDelayMs !== undefined) await sleep(this.#order.script.runDelayMs)
    const argv = argumentsIn(fields)
    const refused = refusal(argv)
    if (refused !== undefined) {
      this.#result(channel, new FieldWriter().add(Tag.error, refused.error).add(Tag.errno, refused.errno).add(Tag.exitCode, refused.exitCode))
      return this.#end({ exitCode: refused.exitCode, signal: 0, oom: false, error: refused.error })
    }
    this.#phase = 'running'
    this.#result(channel, new FieldWriter())
    this.#send(frame(FrameType.event, 0, new FieldWriter().add(Tag.kind, 'started')))
    this.#begin(argv)
  }

  #begin (argv: readonly string[], memory?: string): void {
    this.#argv = argv
    this.#program = startProgram(argv, { write: this.#write, onEnd: (ending) => this.#end(ending), isPaused: this.#isPaused, memory })
  }

  #exec (channel: number, fields: ReturnType<typeof readFields>): void {
    if (!this.#agent) return this.#refuse(channel, 95, 'the guest agent is disabled for this instance')
    const argv = argumentsIn(fields)
    const refused = refusal(argv)
    if (refused !== undefined) {
      this.#result(channel, new FieldWriter().add(Tag.error, refused.error).add(Tag.exitCode, refused.exitCode).add(Tag.signal, 0))
      return
    }
    startProgram(argv, {
      write: (text) => this.#send(frame(FrameType.data, channel, Buffer.from(text), 1)),
      onEnd: ({ exitCode, signal }) => {
        for (const stream of [1, 2]) this.#send(frame(FrameType.eof, channel, Buffer.alloc(0), stream))
        this.#result(channel, new FieldWriter().add(Tag.exitCode, exitCode).add(Tag.signal, signal))
      }
    })
  }

  #shutDown (): void {
    if (this.#program !== undefined) this.#program.kill(SIGTERM)
    else this.#end({ exitCode: 128 + SIGTERM, signal: SIGTERM, oom: false })
  }

  #end (ending: Ending): void {
    if (this.#phase === 'exiting') return
    this.#phase = 'exiting'
    this.#ending = ending
    const error = ending.error === undefined ? '' : `error=${ending.error}\n`
    const report = `version=1\nexit_code=${ending.exitCode}\nsignal=${ending.signal}\noom=${Number(ending.oom)}\n${error}end\n`
    this.#report(this.#order.script.report ?? report)
    const event = addEnding(new FieldWriter().add(Tag.kind, 'exited'), ending)
    if (this.#host === undefined) return this.#powerOff()
    this.#host.end(frame(FrameType.event, 0, event), () => this.#powerOff())
  }

  #refuse (channel: number, errno: number, error: string): void {
    this.#result(channel, new FieldWriter().add(Tag.error, error).add(Tag.errno, errno))
  }

  #result (channel: number, fields: FieldWriter): void {
    this.#send(frame(FrameType.result, channel, fields))
  }

  #send (bytes: Buffer): void {
    this.#host?.write(bytes)
  }
}

function argumentsIn (fields: ReturnType<typeof readFields>): string[] {
  return fields.filter(([tag]) => tag === Tag.argv).map(([, value]) => value.toString())
}

function addEnding (fields: FieldWriter, { exitCode, signal, oom, error }: Ending): FieldWriter {
  return fields.add(Tag.exitCode, exitCode).add(Tag.signal, signal).add(Tag.oom, oom).add(Tag.error, error)
}
