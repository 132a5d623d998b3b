// See policies.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('policies.js', import.meta.url))
