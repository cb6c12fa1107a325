import io.delta.exceptions.ConcurrentAppendException;
import io.delta.tables.DeltaTable;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Changes a table, and reads its history, in Java. Run it with spark-submit; its argument is the table's path. */
public final class OrdersReport {

  public static void main(String[] args) {
    run(SparkSession.builder().getOrCreate(), args[0]);
  }

  public static void run(SparkSession spark, String path) {
    DeltaTable orders =
        DeltaTable.createIfNotExists(spark)
            .location(path)
            .addColumn("id", "BIGINT")
            .addColumn("state", "STRING")
            .addColumn(
                DeltaTable.columnBuilder(spark, "is_open")
                    .dataType("BOOLEAN")
                    .generatedAlwaysAs("state = 'open'")
                    .build())
            .clusterBy("state", "id")
            .execute();
    Dataset<Row> rows = spark.range(10).selectExpr("id", "'open' AS state");
    rows.write().format("delta").mode("append").save(path);

    try {
      orders.updateExpr("id < 3", Map.of("state", "'shipped'"));
      orders.update(functions.col("id").equalTo(5), Map.of("state", functions.lit("returned")));
      orders
          .as("o")
          .merge(spark.range(8, 12).toDF("id").as("c"), "o.id = c.id")
          .whenMatched()
          .delete()
          .whenNotMatched()
          .insertExpr(Map.of("id", "c.id", "state", "'open'"))
          .execute();
    } catch (ConcurrentAppendException conflict) {
      System.out.println("Run it again: " + conflict.getMessage());
    }
    orders.optimize().executeCompaction();
    orders.history(4).select("version", "operation").show();
    orders.toDF().groupBy("state", "is_open").count().orderBy("state").show();
  }
}
