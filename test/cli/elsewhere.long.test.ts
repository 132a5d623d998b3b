// The command against a server in another network namespace over TLS: see elsewhere.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('elsewhere.js', import.meta.url))
