# The MLflow server with the drivers of its database (psycopg2) and of S3 (boto3).
FROM python:3.11.14-slim-bookworm

RUN pip install --no-cache-dir mlflow==3.17.2 psycopg2-binary==2.9.13 boto3==1.44.8 \
    && useradd --uid 10001 --create-home mlflow \
    && install --directory --owner mlflow --group mlflow /artifacts

USER mlflow
WORKDIR /home/mlflow
EXPOSE 5000
CMD ["mlflow", "server", "--host", "0.0.0.0", "--port", "5000"]
