// Takes secrets out of text before anyone can read it.

/** Every secret replaced by `***`, longest first, so that one secret inside another leaves no rest. Also as it looks inside a URL. */
export function maskSecrets (text: string, secrets: readonly string[] = []): string {
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)])
  return [...new Set(forms)]
    .filter((secret) => secret !== '')
    .sort((a, b) => b.length - a.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
