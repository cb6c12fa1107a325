package io.deltaic.spark.write.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.crypto.{EncryptionPropertiesFactory, FileEncryptionProperties}
import org.apache.parquet.hadoop.api.WriteSupport

class JoinedFileSuite extends munit.FunSuite {

  test("encrypted files are not joined") {
    val conf = new Configuration
    assert(JoinedFile.isPossible(conf))
    conf.set(
      EncryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME,
      classOf[JoinedFileSuite.Encryption].getName
    )
    assert(!JoinedFile.isPossible(conf))
  }
}

object JoinedFileSuite {
  final class Encryption extends EncryptionPropertiesFactory {
    override def getFileEncryptionProperties(
        conf: Configuration,
        file: Path,
        context: WriteSupport.WriteContext
    ): FileEncryptionProperties = throw new UnsupportedOperationException
  }
}
