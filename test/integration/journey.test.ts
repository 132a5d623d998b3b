// All that a user does with a machine, from its creation to an image that was built, once each: see journey/journey.ts.
import { runIsolated } from '../helpers/isolated.ts'
import { fetchImages } from './builds/egress-images.ts'

if (process.getuid?.() === 0) await runIsolated(new URL('journey/journey.js', import.meta.url), fetchImages)
else await (await import('tap')).default.test('a machine and all that is done with it', { skip: 'the files of its images belong to many users, which takes root' }, () => undefined)
