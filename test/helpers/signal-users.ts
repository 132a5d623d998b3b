// What hangs on a signal.
import { getEventListeners } from 'node:events'

/** How many listeners wait for the signal, and how many entries AbortSignal.any has left in it: it keeps one for each signal that was made of this one. */
export function usersOf (signal: AbortSignal): number {
  const dependants = Object.getOwnPropertySymbols(signal).filter(({ description }) => description === 'kDependantSignals').map((symbol): unknown => Reflect.get(signal, symbol))
  return getEventListeners(signal, 'abort').length + dependants.reduce<number>((sum, each) => sum + (hasSize(each) ? each.size : 0), 0)
}

/** Node's own sets have another prototype. */
function hasSize (value: unknown): value is { readonly size: number } {
  return typeof value === 'object' && value !== null && 'size' in value && typeof value.size === 'number'
}
