// CutPicture: partial backward by layer: above, how many replicas send gradients of each layer; below, which ones, with
// the cut of each replica. Paints with any painter. GUI thread only.
#pragma once

#include "schedules/survey/partial.h"
#include "widgets/explore/cursor_picture.h"

namespace stagewright {

class CutPicture : public CursorPicture {
    Q_OBJECT
public:
    explicit CutPicture(QWidget* parent = nullptr);
    void setAnswer(CutAnswer answer, const CutQuestion& question);
    const CutAnswer& answer() const { return m_answer; }
    QString meanText() const; // the mean backward, and (N + 1)/(2N)

    int marks() const override { return static_cast<int>(m_answer.rows.size()); } // columns: embedding, layers, head
    QString textOf(int mark) const override;
    TableText table() const override;
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;

protected:
    QRectF markIn(const QRectF& rect, int mark) const override;

private:
    struct Place;
    Place placeIn(const QRectF& rect) const;
    void paintCounts(QPainter& painter, const Place& place, const Theme& theme) const;
    void paintReplicas(QPainter& painter, const Place& place, const Theme& theme) const;

    CutAnswer m_answer;
    CutQuestion m_question;
};

} // namespace stagewright
