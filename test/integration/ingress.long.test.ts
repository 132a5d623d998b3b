// Programs of a real machine behind names with TLS: see ingress.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('ingress.js', import.meta.url))
