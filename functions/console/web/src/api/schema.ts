// Written when the server answers its document.
export interface paths {}
