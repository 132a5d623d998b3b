// See many.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('many.js', import.meta.url))
