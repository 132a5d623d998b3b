// See egress-traces.ts. The receiver comes from a registry, which its namespace has no way to.
import { installReceiver } from '../helpers/otlp-receiver.ts'
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('egress-traces.js', import.meta.url), installReceiver)
