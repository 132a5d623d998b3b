// What is stored of an ingress. Types only.

export interface RuleAuth {
  /** in lower case */
  readonly header: string
  /** by the service `secrets`, for the purpose that `authPurpose` says */
  readonly sealed: string
}

export interface IngressRule {
  /** in lower case: exact, with a `*.` in front, or with captures such as `{instance}` for whole labels */
  readonly hostname: string
  readonly port: number
  /** `/` for all paths, else without a slash at its end */
  readonly path: string
  /** an instance's id or name, or a capture of the host's name */
  readonly instance: string
  readonly targetPort: number
  readonly tls: boolean
  readonly redirectHttp: boolean
  readonly auth?: RuleAuth
}

export interface IngressRecord {
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly tags: Readonly<Record<string, string>>
  readonly rules: readonly IngressRule[]
}

export function authPurpose (ingressId: string): string {
  return `ingress ${ingressId}`
}
