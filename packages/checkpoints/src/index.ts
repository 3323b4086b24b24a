export { changesBetween } from "./changes-between.ts";
export { s3Store, type S3StoreOptions } from "./s3/s3-store.ts";
export { directoryStore } from "./directory/directory-store.ts";
