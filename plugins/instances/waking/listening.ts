// A program that was just started, or was captured before it listened, refuses connections that come too soon. So callers wait for a while until it listens.
import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../../../core/jobs/deadline.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { ECONNREFUSED } from '../guest/call-port.ts'
import type { Context } from '../context.ts'
import { isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'

/** how long a program may take until it listens, after its instance was woken */
const WITHIN_MS = 10_000
const BETWEEN_TRIES_MS = 50

interface Woken {
  readonly until: number
  /** by port: all callers wait for the same tries */
  readonly ports: Map<number, Promise<void>>
}

export class Listening {
  readonly #context: Context
  /** by id of the instance */
  readonly #woken = new Map<string, Woken>()

  constructor (context: Context) {
    this.#context = context
  }

  /** From now on callers wait for a while. */
  woken ({ id }: LiveInstance): void {
    const now = performance.now()
    for (const [other, { until }] of this.#woken) if (until < now) this.#woken.delete(other)
    this.#woken.set(id, { until: now + WITHIN_MS, ports: new Map() })
  }

  /** Resolves once a program listens at a port of an instance that was woken a short time ago, or when that time is over; at once for any other instance. */
  async wait (instance: LiveInstance, port: number, signal: AbortSignal): Promise<void> {
    const woken = this.#woken.get(instance.id)
    if (woken === undefined || woken.until < performance.now()) return
    const listens = woken.ports.get(port) ?? this.#tries(instance, port, woken.until)
    woken.ports.set(port, listens)
    await unlessAborted(signal, listens)
  }

  async #tries (instance: LiveInstance, port: number, until: number): Promise<void> {
    const { network, closing: { signal } } = this.#context
    const address = network?.addressOf(instance.id)?.ip
    while (instance.state === 'Running' && performance.now() < until && !signal.aborted) {
      const link = await instance.session?.awaitLink(WITHIN_MS, signal)
      if (link === undefined || address === undefined) return
      try {
        const connection = await within(WITHIN_MS, [signal], async (over) => await link.connect(port, { address, signal: over }))
        connection.destroy()
        return
      } catch (error) {
        // Any other error is left to the caller, who will meet it.
        if (!isRefusal(error) || error.errno !== ECONNREFUSED) return
      }
      await sleep(BETWEEN_TRIES_MS)
    }
  }
}
