// The two parts of node-forge that certificates need, by their paths: the whole package takes twice the time to load. Its types know only the whole.
declare module 'node-forge/lib/asn1.js' {
  import { asn1 } from 'node-forge'
  export = asn1
}

declare module 'node-forge/lib/x509.js' {
  import { pki } from 'node-forge'
  export = pki
}
