// Passes a guest's body on to an origin.
import type { Readable } from 'node:stream'
import type { Exchange } from '../vms/exchange.ts'
import { Pump, type PumpTarget } from './pump.ts'

/** Passes and counts the whole body, no faster than the target takes it; `end` is called after the last piece. */
export function passUp (exchange: Exchange, source: Readable, target: PumpTarget, end: () => void): void {
  const pump = new Pump(source, target, exchange)
  source.on('data', exchange.listener((chunk: Buffer) => {
    exchange.bytesIn += chunk.length
    pump.send(chunk)
  }))
  source.on('end', exchange.listener(() => {
    pump.flush()
    end()
  }))
}
