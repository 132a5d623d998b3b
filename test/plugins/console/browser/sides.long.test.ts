// See sides.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('sides.js', import.meta.url))
