// See life.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('life.js', import.meta.url))
