// The environment variables of a copy of an instance that differ from those of its source.
import type { BaseContext } from '../context.ts'
import { requirePolicy } from '../parts/policy.ts'
import type { InstanceSpec } from '../model/record.ts'
import { checkEnv } from '../validate/env.ts'

/**
 * The spec with these variables in place of its own of the same names, and beside the others. Variables from which credentials take their values go into the policy.
 * @throws invalid_request naming the variable, PluginDisabled
 */
export function withEnvironment (context: BaseContext, spec: InstanceSpec, env: Readonly<Record<string, string>> | undefined): InstanceSpec {
  if (env === undefined) return spec
  checkEnv('env', env)
  const found = requirePolicy(context, { spec }, 'env')
  const { values, variables } = found?.egress.divide(found.policy, env) ?? { values: {}, variables: env }
  return { ...spec, env: { ...spec.env, ...variables }, ...(found === undefined || Object.keys(values).length === 0 ? {} : { egress: found.egress.rotate(found.policy, values) }) }
}
