// See returns.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('returns.js', import.meta.url))
