// The value of a signal inside of a component, which is drawn again when it changes.
import type { ReadonlySignal } from '@preact/signals'

export function useSignalValue<T> (signal: ReadonlySignal<T>): T {
  return signal.value
}
