// The Cloud Hypervisor driver keeps the contract against a protocol double, which judges each of its requests. That proves nothing about Cloud Hypervisor: conformance.long.test.ts has the real one.
import t from 'tap'
import { conformanceOnDouble } from '../../vmm-double/driver.ts'
import { double } from './double.ts'

await conformanceOnDouble(t, new URL('double.js', import.meta.url), double)
