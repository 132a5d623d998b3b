// See markup.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('markup.js', import.meta.url))
