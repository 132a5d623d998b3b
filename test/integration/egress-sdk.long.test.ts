// The official SDK's calls about a mediated way out: see egress/sdk.ts.
import { runIsolated } from '../helpers/isolated.ts'
import { fetchImages } from './egress/image.ts'

await runIsolated(new URL('egress/sdk.js', import.meta.url), fetchImages)
