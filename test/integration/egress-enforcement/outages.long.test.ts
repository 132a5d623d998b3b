// Guests while the server or the proxy is dead: see outages.ts.
import { runIsolated } from '../../helpers/isolated.ts'

await runIsolated(new URL('outages.js', import.meta.url))
