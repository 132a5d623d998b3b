// A command that a test's scripted guest runs: its streams and its end are the test's.
import { PassThrough } from 'node:stream'
import type { ExecResult, ExecSession } from '../../../plugins/guest/contract.ts'

export class ScriptedExec implements ExecSession {
  readonly stdin = new PassThrough()
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  readonly signals: number[] = []
  readonly sizes: [number, number][] = []
  cancelled = false
  readonly result: Promise<ExecResult>
  #settle: { resolve (result: ExecResult): void, reject (error: Error): void } | undefined

  constructor () {
    this.result = new Promise((resolve, reject) => { this.#settle = { resolve, reject } })
    this.result.catch(() => {})
  }

  /** what the guest takes its time for; undefined: it takes all at once */
  taking: Promise<void> | undefined

  async resize (rows: number, cols: number): Promise<void> {
    this.sizes.push([rows, cols])
    await this.taking
  }

  async signal (signal: number): Promise<void> {
    this.signals.push(signal)
    await this.taking
  }

  cancel (): void {
    this.cancelled = true
    this.end({ exitCode: 137, signal: 9 })
  }

  end (result: ExecResult): void {
    this.stdout.end()
    this.stderr.end()
    this.#settle?.resolve(result)
  }

  lose (): void {
    this.#settle?.reject(Object.assign(new Error('the connection to the guest ended: gone'), { code: 'guest_gone' }))
    this.stdout.end()
    this.stderr.end()
  }
}
