// Builds whose steps reach the world through the egress proxy: see egress.ts.
import { runIsolated } from '../../helpers/isolated.ts'
import { fetchImages } from './egress-images.ts'

await runIsolated(new URL('egress.js', import.meta.url), fetchImages)
