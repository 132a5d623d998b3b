// The current time, for texts such as `3 minutes ago`.
import { signal } from '@preact/signals'

export const now = signal(Date.now())
setInterval(() => { now.value = Date.now() }, 10_000)
