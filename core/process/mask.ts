// Removes secrets from text before anyone can read it.

/** Replaces every secret by `***`, longest first, so that no part of a secret that contains another one is left. Also replaces its URL-encoded form. */
export function maskSecrets (text: string, secrets: readonly string[] = []): string {
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)])
  return [...new Set(forms)]
    .filter((secret) => secret !== '')
    .sort((a, b) => b.length - a.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
