# The gateway: no torch, no compiler, no root.
FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/mentee

COPY requirements/gateway.txt requirements/gateway.txt
RUN pip install --no-cache-dir --no-deps -r requirements/gateway.txt

COPY pyproject.toml ./
COPY app app
COPY bots bots
COPY learner learner
COPY migrations migrations
RUN pip install --no-cache-dir --no-deps -e . \
    && useradd --system --uid 10001 --home-dir /srv/mentee mentee \
    && install -d -o mentee -g mentee /var/lib/mentee

USER mentee
ENV MENTEE_HOME=/var/lib/mentee MENTEE_HOST=0.0.0.0
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
CMD ["python", "-m", "app.main"]
