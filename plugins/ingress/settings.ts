// What the schema of the settings cannot say.
import type { AcmeConfig, IngressConfig } from './manifest.ts'

/** Whether there is anything to do. */
export function hasPort ({ listen }: IngressConfig): boolean {
  return listen.http.length + listen.https.length > 0
}

/** @throws Error that names the key */
export function requireSettings (config: IngressConfig): void {
  const { listen, certificates: { acme } } = config
  // The plugin is skipped.
  if (!hasPort(config)) return
  const both = listen.http.find((port) => listen.https.includes(port))
  if (both !== undefined) throw new Error(`plugins.ingress.config.listen: port ${both} stands in http and in https`)
  requireAcme(acme, listen.http.length > 0)
}

/** @throws Error that names the setting that an ACME authority requires */
function requireAcme ({ directory, email, acceptTerms, challenge, dnsProvider }: AcmeConfig, hasHttp: boolean): void {
  if (directory === undefined) return
  const without = (key: string, why: string): never => { throw new Error(`plugins.ingress.config.certificates.acme.${key}: ${why}`) }
  if (email === undefined) without('email', 'is missing, and the account at the directory needs it')
  if (!acceptTerms) without('acceptTerms', 'must be true: nobody else can agree to the terms of the directory')
  if (challenge === 'dns-01' && dnsProvider === undefined) without('dnsProvider', 'is missing, and dns-01 needs it')
  if (challenge === 'http-01' && !hasHttp) without('challenge', 'http-01 needs a port for plain HTTP in plugins.ingress.config.listen.http')
}
