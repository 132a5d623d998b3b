// See lists.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('lists.js', import.meta.url))
